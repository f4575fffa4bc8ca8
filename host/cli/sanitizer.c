/*
 * Sanitizer -- what the leak check of a sanitized build overlooks: glibc keeps
 * the list of LOCPATH that a library's start code (p11-kit, below libpq) has
 * it read.
 */
#if defined(__SANITIZE_ADDRESS__)

const char *__lsan_default_options(void);
const char *__lsan_default_suppressions(void);

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

const char *__lsan_default_suppressions(void)
{
    return "leak:__argz_add_sep\n";
}

#else

typedef int sanitizer_is_off; /* a file may not be empty */

#endif
