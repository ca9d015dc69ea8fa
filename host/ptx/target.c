/* Which images load where, and which targets have a form: `.target` rules (PTX ISA 9.0, 11.1.2 ".target") as
   ptxas 13.0 applies them to all pairs of its 17 targets (ptx-facts, "Forward compatibility of .target").
   Families: 10.0 and 10.3; 11.0 alone; 12.0 and 12.1. */
#include <string.h>

#include "ptx/ptx.h"

static unsigned family(unsigned sm)
{
    return sm / 10;
}

bool ptx_target_accepts(struct ptx_target image, struct ptx_target device, const char **out_reason)
{
    const char *reason = NULL;
    if (image.suffix == 'a') {
        if (image.sm != device.sm)
            reason = image.sm > device.sm
                         ? "SM version specified by .target is higher than default SM version assumed"
                         : "program with an architecture-specific .target (suffix a) cannot be "
                           "compiled to another architecture: it is not forward compatible";
        else if (device.suffix != 'a')
            reason = "PTX with an architecture-specific .target (suffix a) cannot be compiled for the plain "
                     "architecture";
    } else if (image.sm > device.sm) {
        reason = "SM version specified by .target is higher than default SM version assumed";
    } else if (image.suffix == 'f' && family(image.sm) != family(device.sm)) {
        reason = "program with a family-specific .target (suffix f) cannot be compiled to different "
                 "SM-family architecture";
    }
    if (out_reason)
        *out_reason = reason;
    return reason == NULL;
}

/* In the sets below a suffix is what counts: f and a targets of the listed chips have the form, plain ones do
 * not. */
bool ptx_target_in(enum ptx_targets on, struct ptx_target target)
{
    bool special = target.suffix == 'a' || target.suffix == 'f';
    unsigned sm = target.sm;
    bool is_100 = sm == 100 || sm == 103, is_110 = sm == 110, is_120 = sm == 120 || sm == 121;
    switch (on) {
    case PTX_ON_ALL_FROM:
        return true;
    case PTX_ON_AF:
        return special && (is_100 || is_110);
    case PTX_ON_AF12:
        return special && (is_100 || is_110 || is_120);
    case PTX_ON_H_AF12:
        return special && (sm == 90 || is_100 || is_110 || is_120);
    case PTX_ON_90A:
        return sm == 90 && target.suffix == 'a';
    case PTX_ON_100F:
        return special && is_100;
    case PTX_ON_103_110:
        return special && (sm == 103 || is_110);
    case PTX_ON_120A:
        return special && is_120;
    case PTX_ON_REMOVED_100:
        return sm < 100;
    case PTX_ON_REMOVED_70:
        return sm < 70;
    case PTX_ON_RS:
        return target.suffix == 'a' && is_100;
    case PTX_ON_A:
        return target.suffix == 'a' && (is_100 || is_110);
    case PTX_ON_I8:
        return target.suffix == 'a' && (sm == 100 || is_110);
    case PTX_ON_AF_12A:
        return special && (is_100 || is_110 || (is_120 && target.suffix == 'a'));
    case PTX_ON_COUNT:
        break;
    }
    return false;
}

bool ptx_target_has(enum ptx_row row, struct ptx_target target)
{
    return target.sm >= ptx_rows[row].sm && ptx_target_in(ptx_rows[row].on, target);
}

/* ptxas: "PTX .version X does not support .target Y". 0: a target that ptxas 13.0 does not know. */
uint16_t ptx_target_isa(struct ptx_target target)
{
    /* Those that ptxas 13.0.88 takes, and the least .version with which it does. */
    static const struct {
        uint8_t sm, isa;
    } older[] = {{10, 10}, {11, 10}, {12, 12}, {13, 12}, {20, 20}, {21, 20}, {30, 30}, {32, 40}, {35, 31},
                 {37, 41}, {50, 40}, {52, 41}, {53, 42}, {60, 50}, {61, 50}, {62, 50}, {70, 51}, {72, 61},
                 {75, 63}, {80, 70}, {82, 62}, {86, 71}, {87, 74}, {88, 73}, {89, 78}};
    switch (target.sm) {
    case 90:
        return target.suffix == 'a' ? 80 : target.suffix ? 0 : 78;
    case 100:
        return target.suffix == 'f' ? 88 : 86;
    case 103:
    case 121:
        return 88;
    case 110:
        return 90;
    case 120:
        return target.suffix == 'f' ? 88 : 87;
    default:
        for (size_t i = 0; i < sizeof older / sizeof older[0]; i++)
            if (older[i].sm == target.sm)
                return target.suffix ? 0 : older[i].isa;
        return 0;
    }
}

bool ptx_target_parse(const char *text, size_t bytes, struct ptx_target *out_target)
{
    if (bytes < 5 || memcmp(text, "sm_", 3) != 0)
        return false;
    unsigned sm = 0;
    size_t at = 3;
    for (; at < bytes && text[at] >= '0' && text[at] <= '9' && sm < 1000; at++)
        sm = sm * 10 + (unsigned)(text[at] - '0');
    char suffix = 0;
    if (at < bytes && (text[at] == 'a' || text[at] == 'f'))
        suffix = text[at++];
    if (at != bytes || sm < 10 || sm >= 1000)
        return false;
    if (sm == 101) /* the former name of 11.0, which ptxas 13.0 still takes */
        sm = 110;
    *out_target = (struct ptx_target){.sm = (uint16_t)sm, .suffix = suffix};
    return true;
}
