-- Where all consumers stand, for hosts that look whether somebody changed it.
SELECT id, state, halt_reason, epoch, state_since
  FROM ${consumers_table}
