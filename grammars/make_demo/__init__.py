"""Generate the bundled German-English bitext from this folder alone: ``python -m grammars.make_demo``.

``lexicon`` and ``morphology`` define the words, ``phrases``, ``verbs`` and ``clauses`` a synchronous grammar
of both languages; ``trees`` has its derivations and adds noise to a few per cent of them, as in real bitexts:
omitted words, free or wrong translations, wrong links. Random derivations give the sentence pairs, with the
true alignment of the training part. Everything is drawn from one seed by ``random.random``, whose sequence is
guaranteed not to change between versions of Python.

The models are trained on these pairs by ``hiero run configs/demo.yaml``, which uses neither derivations nor
true alignments.
"""
