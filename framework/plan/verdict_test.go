package plan_test

import (
	"testing"

	"github.com/operatorkit/operatorkit/framework/plan"
)

func TestAVerdictNamesFiveChangesAtMost(t *testing.T) {
	v := plan.GuardVerdict{Guard: "keep", Action: plan.Denied, Message: "Ask Ada."}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		v.Changes = append(v.Changes, plan.Change{Action: plan.Delete, Object: plan.Object{Kind: "Page", Name: name}})
	}
	want := `denied by guard "keep": delete Page a, delete Page b, delete Page c, delete Page d, delete Page e and 2 more: Ask Ada.`
	if got := v.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
