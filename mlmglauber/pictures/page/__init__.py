"""Pages: pictures as files of HTML that a reader can ask."""
