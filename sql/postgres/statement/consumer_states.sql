-- Where all consumers stand, for hosts that look whether somebody changed it.
SELECT id::text, state, halt_reason, epoch, state_since
  FROM ${consumers_table}
