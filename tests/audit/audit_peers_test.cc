#include "tests/audit/audit_story.h"
