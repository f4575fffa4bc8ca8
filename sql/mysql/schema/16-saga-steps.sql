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
    id                   CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    instance_id          CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    saga_type            VARCHAR(255) NOT NULL,
    saga_id              VARCHAR(255) NOT NULL,
    step_no              INT NOT NULL,
    step_name            VARCHAR(255) NOT NULL,
    round                INT NOT NULL DEFAULT 1,
    state                VARCHAR(32) NOT NULL,
    command_id           CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    compensation_id      CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    sends                INT NOT NULL DEFAULT 1,
    compensation_sends   INT NOT NULL DEFAULT 0,
    message_json         LONGTEXT,
    deadline_at          DATETIME(6),
    failure_reason       VARCHAR(1000),
    sent_at              DATETIME(6) NOT NULL,
    answered_at          DATETIME(6),
    compensation_sent_at DATETIME(6),
    compensated_at       DATETIME(6),
    updated_at           DATETIME(6) NOT NULL,
    CONSTRAINT uq_${saga_steps_table} UNIQUE (instance_id, step_name, round),
    INDEX idx_${saga_steps_table}_saga (saga_type, saga_id, step_no, round),
    INDEX idx_${saga_steps_table}_alarm (state, saga_type)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4
  COLLATE utf8mb4_nopad_bin;
