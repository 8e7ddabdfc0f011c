"""What all commands share: the record loop, options, inputs, tables and the process they run in."""
