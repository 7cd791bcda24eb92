/* setqload/setqload.h - the whole command but main(). Returns an exit code of
 * sysexits.h, the reason is on standard error in one line. */
#ifndef SETQLOAD_SETQLOAD_H
#define SETQLOAD_SETQLOAD_H

int setqload_main(int argc, char **argv);

#endif
