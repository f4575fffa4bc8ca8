-- Small batches and short delays: much happens between two kills.
return {
  scripts = "handlers",
  partitions = 12,
  batch = 60,
  poll = { min_interval = "2ms", max_interval = "20ms" },
  -- what a killed host has held is free soon
  lease = { duration = "500ms", heartbeat = "100ms", rebalance = "100ms" },
  -- which no handler and no reset meets, however slow the machine
  limits = { time = "30s" },
  log = { level = "warn", format = "logfmt" },
}
