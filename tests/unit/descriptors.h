/* tests/unit/descriptors.h - shared by all programs of units. */
#ifndef UNIT_DESCRIPTORS_H
#define UNIT_DESCRIPTORS_H

/* How many descriptors this process has open. */
unsigned unit_descriptors(void);

#endif
