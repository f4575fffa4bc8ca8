return {
  partitions = 12,
  workers = 1, -- the order and the leases of one are judged
  clock_offset = "0s", -- replaced by scripts/faults: all is due after an outage
  lease = { duration = "10s" },
  stop_timeout = "90s", -- a slow machine lets a batch in hand take long
}
