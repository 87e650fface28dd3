"""Parts that every package uses: kernels, errors, arrays, symbols, text, directories, records."""
