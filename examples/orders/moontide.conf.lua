-- Settings of the orders example. Everything that is not here has its default;
-- `moontide check` prints all values and where each one comes from.
return {
  database = "sqlite:orders.db", -- DATABASE_URL and --database win over this
  scripts = "handlers",
}
