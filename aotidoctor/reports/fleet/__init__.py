"""A fleet's summary in every format: the words in ``words``, one file per format."""
