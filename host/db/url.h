/*
 * URL -- what can be told about a database URL without a connection: the
 * dialect it asks for, where a relative path starts, how it is shown. The
 * layers above know no dialect; they ask here.
 */
#ifndef HOST_DB_URL_H
#define HOST_DB_URL_H

#include "base/buffer.h"
#include "base/status.h"

#include <stdbool.h>

/** Used when nothing is configured. */
#define DB_URL_DEFAULT "sqlite:moontide.db"
/** For messages and help: the forms a URL may take. */
#define DB_URL_FORMS                                                           \
    "sqlite:PATH, sqlite::memory:, postgresql://..., mysql://... or "          \
    "mariadb://..."

/** Folder under sql/ of the URL's dialect, or NULL when the form is unknown. */
const char *db_url_dialect(const char *url);

/** Whether databases of this URL take one host with one process only. */
bool db_url_single_process(const char *url);

/** Whether such a database is gone with the connection that made it. */
bool db_url_is_memory(const char *url);

/** Appends the URL; a relative path of a file in it starts from `folder`. */
void db_url_resolve(const char *url, const char *folder, struct buffer *out);

/** Appends the URL with the password, if there is one, masked. */
void db_url_mask(const char *url, struct buffer *out);

#endif
