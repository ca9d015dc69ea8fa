/* Predictions judged: each function of the file gets the row records and says true (held), false (refuted) or
   nil (not measured), and may add a sentence. It never changes what the run returns. */
#include "lab/plan.h"

#include "lab/wire.h"

#include <stdio.h>

json_t *clab_plan_judge(struct clab_plan *plan, const json_t *rows, const json_t *device)
{
    struct clab_eval *eval = plan->eval;
    lua_State *L = eval->L;
    const json_t *predictions = json_object_get(plan->result, "predictions");
    json_t *verdicts = clab_eval_json(eval, json_array());
    clab_push_field(eval, plan->root, "predictions");
    for (size_t i = 0; i < json_array_size(predictions); i++) {
        const json_t *prediction = json_array_get(predictions, i);
        const char *verdict = "not measured", *detail = "";
        struct clab_error error = {0};
        int base = lua_gettop(L);
        lua_pushcfunction(L, clab_sandbox_handler);
        lua_rawgeti(L, base, (lua_Integer)i + 1);
        lua_rawgeti(L, -1, 2);
        lua_remove(L, -2);
        clab_json_to_lua(L, rows);
        clab_json_to_lua(L, device);
        int status = lua_pcall(L, 2, 2, base + 1);
        char text[1600];
        if (status != LUA_OK) {
            clab_sandbox_error(eval, status, &error);
            snprintf(text, sizeof text, "%s:%u: %s", error.file, error.line, error.message);
            detail = text;
        } else {
            if (lua_isboolean(L, -2))
                verdict = lua_toboolean(L, -2) ? "held" : "refuted";
            else if (!lua_isnil(L, -2))
                detail = "the prediction's function returned neither true, false nor nil";
            if (detail[0] == '\0' && lua_type(L, -1) == LUA_TSTRING)
                detail = lua_tostring(L, -1);
        }
        json_t *judged =
            json_pack("{s:O,s:s,s:s,s:O}", "text", json_object_get(prediction, "text"), "verdict", verdict,
                      "detail", detail, "line", json_object_get(prediction, "line"));
        clab_error_clear(&error);
        clab_eval_append(eval, verdicts, judged);
        lua_settop(L, base);
    }
    lua_settop(L, plan->root);
    return verdicts;
}
