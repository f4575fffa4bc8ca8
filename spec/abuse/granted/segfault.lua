-- Writes where nothing is.
-- ends: ^crash: handlers/NAME%.lua:%d+: the worker ended in its handler %(signal 11, Segmentation fault%)
require("ffi").cast("int *", 8)[0] = 1
