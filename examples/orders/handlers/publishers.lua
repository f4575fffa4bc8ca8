-- Where messages to the other services go.
local moontide = require "moontide"

return {
  moontide.publisher "payments" { to = "kafka:payments" },
  moontide.publisher "warehouse" { to = "kafka:warehouse" },
  moontide.publisher "carrier" { to = "amqp:carrier" },
  moontide.publisher "mail" { to = "https://mail.example/hook" },
}
