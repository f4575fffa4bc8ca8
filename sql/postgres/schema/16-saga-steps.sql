-- The history of orchestrated sagas: one row per instance, step and round.
-- A new round begins when a success arrives that was no longer awaited.
--
-- instance_id is the id of the saga's row, so that a saga started again under
-- the id of a deleted one begins with an empty history. step_no is the step's
-- place in the declaration. command_id and compensation_id are what a
-- receiver recognises a repeated command by, so a resend keeps them.
-- deadline_at is when the awaited answer, to the command or to its
-- compensation, is overdue, NULL while none is awaited. message_json is the
-- payload of what is awaited, to be sent again.
CREATE TABLE IF NOT EXISTS ${saga_steps_table} (
    id                   UUID          NOT NULL PRIMARY KEY,
    instance_id          UUID          NOT NULL,
    saga_type            VARCHAR(255)  COLLATE "C" NOT NULL,
    saga_id              VARCHAR(255)  COLLATE "C" NOT NULL,
    step_no              INTEGER       NOT NULL,
    step_name            VARCHAR(255)  COLLATE "C" NOT NULL,
    round                INTEGER       NOT NULL DEFAULT 1,
    state                VARCHAR(32)   COLLATE "C" NOT NULL,
    command_id           UUID          NOT NULL,
    compensation_id      UUID,
    sends                INTEGER       NOT NULL DEFAULT 1,
    compensation_sends   INTEGER       NOT NULL DEFAULT 0,
    message_json         TEXT,
    deadline_at          TIMESTAMPTZ,
    failure_reason       VARCHAR(1000),
    sent_at              TIMESTAMPTZ   NOT NULL,
    answered_at          TIMESTAMPTZ,
    compensation_sent_at TIMESTAMPTZ,
    compensated_at       TIMESTAMPTZ,
    updated_at           TIMESTAMPTZ   NOT NULL,
    CONSTRAINT uq_${saga_steps_table} UNIQUE (instance_id, step_name, round)
);

CREATE INDEX IF NOT EXISTS idx_${saga_steps_table}_saga
    ON ${saga_steps_table} (saga_type, saga_id, step_no, round);

-- Those that need an operator's eye.
CREATE INDEX IF NOT EXISTS idx_${saga_steps_table}_alarm
    ON ${saga_steps_table} (saga_type, state)
 WHERE state IN ('OVERDUE', 'STUCK');
