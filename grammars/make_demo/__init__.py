"""The bundled German-English model, made from nothing but this folder: ``python -m grammars.make_demo``.

``lexicon`` and ``morphology`` know the words, ``phrases``, ``verbs`` and ``clauses`` a synchronous grammar of
both languages at once; ``trees`` holds its derivations and spoils a few per cent of them, as real bitexts are
spoilt: words left out, free or wrong translations, bad links. From derivations drawn at random come the
sentence pairs, with the true alignment of the training part. All is drawn from one seed with
``random.random`` alone, which Python promises never to change.

The models are made of these pairs by ``hiero run configs/demo.yaml``, without a look at derivations or true
alignments.
"""
