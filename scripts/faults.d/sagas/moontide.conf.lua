return {
  partitions = 12,
  workers = 2, -- replaced by scripts/faults
  lease = { duration = "1s", heartbeat = "200ms", rebalance = "200ms" },
  poll = { max_interval = "50ms" },
  limits = { time = "2s" },
  stop_timeout = "90s", -- a slow machine lets a batch in hand take long
  -- a worker that is killed in a handler has spent an attempt of its message
  retry = { attempts = 1000, delay = "100ms", factor = 1, jitter = 0 },
}
