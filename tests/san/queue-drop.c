/* What the sanitizers have to know of a set-group-id program: the leak checker
 * traces the process that it looks at, and the kernel refuses that to the
 * caller of a program with more rights; the exit would count as an error. The
 * door is checked for leaks by its unit tests, which have no such rights. */
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
