/*
 * Status declaration -- how what the scripts declare stands to what the read
 * models were derived with, in sentences that say what to do; part of status.c.
 */
#ifndef HOST_RUN_STATUS_DECLARATION_H
#define HOST_RUN_STATUS_DECLARATION_H

#include "base/buffer.h"
#include "run/status.h"

/** Behind "... is halted since ... (DECLARATION_CHANGED)". */
void status_declaration_halted(const struct status_consumer *consumer,
                               struct buffer *sentence);

/** Whether the next start halts it; the sentence about that. */
bool status_declaration_will_halt(const struct status_consumer *consumer);
void status_declaration_warn(const struct status_consumer *consumer,
                             struct buffer *sentence);

/** What a rebuild does not do to the tables of an SQL projection, when their
 * SQL has changed; appends nothing otherwise. `tables`: its file, or NULL. */
void status_declaration_tables(const struct fingerprint_change *change,
                               const char *tables, const char *name,
                               struct buffer *sentence);

/** What is worth knowing and not wrong; appends nothing when there is none. */
void status_declaration_note(const struct status_consumer *consumer,
                             struct buffer *sentence);

#endif
