"""Commands of the command line, a module a subject, and the options that they share."""
