return {
  partitions = 12,
  clock_offset = "0s", -- replaced by scripts/faults: all is due after an outage
  lease = { duration = "10s" },
}
