"""Word alignment: IBM model 2 and HMM."""
