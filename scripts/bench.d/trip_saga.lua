-- An orchestrated saga for each trip: three commands, each answered by success.
local moontide = require "moontide"

local function say(saga)
  return { trip = saga.id, seats = saga.state.seats }
end

return {
  moontide.publisher "carrier" { to = "stdout:" },

  moontide.saga "trip-saga" {
    id = moontide.by "trip",
    starts = { "trip.Booked" },

    on = { ["trip.Booked"] = function(saga, event) saga.state.seats = event.payload.seats end },

    steps = {
      { name = "seat", to = "carrier", command = "seat.Take", message = say, timeout = "1h", succeeds = "seat.Taken",
        compensate = { command = "seat.Free", succeeds = "seat.Freed" } },
      { name = "bed", to = "carrier", command = "bed.Take", message = say, timeout = "1h", succeeds = "bed.Taken",
        compensate = { command = "bed.Free", succeeds = "bed.Freed" } },
      { name = "pass", to = "carrier", command = "pass.Print", message = say, timeout = "1h", pivot = true,
        succeeds = "pass.Printed" },
    },
  },
}
