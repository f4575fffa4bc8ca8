/*
 * Memory -- allocation that does not fail.
 *
 * The host's own structures are small and bounded; when the machine has no
 * memory for them the process ends with a message, and the open transaction
 * rolls back by itself. Sizes that come from input are checked against their
 * limits before they get here.
 */
#ifndef HOST_BASE_MEMORY_H
#define HOST_BASE_MEMORY_H

#include <stddef.h>

void *mem_alloc(size_t size);                         /* zeroed */
void *mem_grow(void *old, size_t count, size_t size); /* overflow-checked */
char *mem_copy_text(const char *text, size_t len);    /* NUL-terminated copy */
void mem_free(void *memory);                          /* NULL is allowed */

#endif
