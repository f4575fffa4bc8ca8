/*
 * Source bundle -- a source set as bytes, so that several processes load the
 * very same files, whatever has become of them on the disk since: who checks
 * them writes one, and the workers load from it.
 *
 * A script may have had a hand in those bytes, so reading trusts no length.
 */
#ifndef HOST_SCRIPT_SOURCE_BUNDLE_H
#define HOST_SCRIPT_SOURCE_BUNDLE_H

#include "base/buffer.h"
#include "script/source_set.h"

/** Appends a sealed set. */
void source_bundle_write(const struct source_set *set, struct buffer *out);

/** The sealed set that was written; source_set_free is owed when it returns
 * OK. Everything is copied. INVALID: the bytes are no bundle. */
enum status source_bundle_read(struct text bytes, struct source_set **set,
                               struct diag *diag) MUST_CHECK;

#endif
