"""The bundled German-English model, made from nothing but this folder: ``python -m grammars.make_demo``.

``lexicon`` and ``morphology`` know the words, ``phrases``, ``verbs`` and ``clauses`` a synchronous grammar of
both languages at once; ``trees`` holds its derivations and spoils a few per cent of them, as real bitexts are
spoilt: words left out, free or wrong translations, bad links. From derivations drawn at random come the
sentence pairs; ``extract`` reads Hiero rules off the derivations of the training part and gives them the
features of a suffix-array extractor, ``ngrams`` estimates a trigram model on its English side. All is drawn
from one seed with ``random.random`` alone, which Python promises never to change.
"""
