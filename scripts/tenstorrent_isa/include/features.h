// What the host's libstdc++ asks of its C library, answered for a core without one.
#pragma once
#define __GLIBC_PREREQ(major, minor) 0
