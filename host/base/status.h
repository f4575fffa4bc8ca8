/*
 * Status -- the one vocabulary of outcomes, and the error that goes with it.
 *
 * Every function that can fail returns an enum status and fills a struct diag
 * with a sentence for a person. Code decides by the status, never by the text.
 */
#ifndef HOST_BASE_STATUS_H
#define HOST_BASE_STATUS_H

#include <stddef.h>

#define MUST_CHECK             __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/*
 * name, value, word, what the caller does with it
 */
#define STATUS_MAP(X)                                                          \
    X(OK, 0, "ok")                                                             \
    X(CONFLICT, -1, "conflict")       /* run the transaction again */          \
    X(LOST, -2, "lost")               /* reconnect; a COMMIT is unknown */     \
    X(UNIQUE, -3, "unique")           /* diag.constraint names the index */    \
    X(PERMANENT, -4, "permanent")     /* the database refused for good */      \
    X(INVALID, -5, "invalid")         /* bad input: message or data */         \
    X(USAGE, -6, "usage")             /* bad command line */                   \
    X(CONFIG, -7, "config")           /* configuration or script error */      \
    X(REFUSED, -8, "refused")         /* a guard or the domain said no */      \
    X(UNAVAILABLE, -9, "unavailable") /* database cannot be reached */         \
    X(BUSY, -10, "busy")              /* somebody holds it: try later */       \
    X(LIMIT, -11, "limit")            /* a configured limit was passed */      \
    X(FAILED, -12, "failed")          /* a handler or an operation failed */   \
    X(FENCED, -13, "fenced")          /* another owner moved the row */        \
    X(STOPPED, -14, "stopped")        /* a stop was asked for */

enum status {
#define STATUS_ENUM(name, value, word) STATUS_##name = (value),
    STATUS_MAP(STATUS_ENUM)
#undef STATUS_ENUM
};

#define DIAG_MESSAGE_SIZE 2048
#define DIAG_NAME_SIZE    128

/** Plain data, owned by the caller; may live on the stack. */
struct diag {
    enum status status;
    char message[DIAG_MESSAGE_SIZE]; /* UTF-8, never cut inside a character */
    /* UNIQUE: constraint, index or columns; PERMANENT: the table that is not
     * there, if that is why */
    char constraint[DIAG_NAME_SIZE];
};

/** The word of a status, for logs and JSON. Never NULL. */
const char *status_word(enum status status);

/** Fills `diag` (may be NULL) and returns `status`. */
enum status diag_set(struct diag *diag, enum status status, const char *format,
                     ...) PRINTF_LIKE(3, 4);

/** Puts "context: " before the message that is there; returns its status. */
enum status diag_wrap(struct diag *diag, const char *format, ...)
    PRINTF_LIKE(2, 3);
/** Puts more behind the message that is there; returns its status. */
enum status diag_append(struct diag *diag, const char *format, ...)
    PRINTF_LIKE(2, 3);

/** Keeps in diag->constraint the first name that a message has in quotes,
 * without its schema; nothing when it has none. */
void diag_name_quoted(struct diag *diag, const char *message, char quote);

#endif
