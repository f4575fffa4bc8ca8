-- Small batches and short delays: much happens between two kills.
return {
  scripts = "handlers",
  partitions = 12,
  batch = 60,
  poll = { min_interval = "2ms", max_interval = "20ms" },
  log = { level = "warn", format = "logfmt" },
}
