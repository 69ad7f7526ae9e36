package serviceprovider

import "testing"

func TestAChangeThatComesWhileTheFirstReadIsUnderWayConcernsObjects(t *testing.T) {
	c := &configs[Config]{}
	if c.concerns("1") {
		t.Error("a config that is there before anything was reconciled concerns nobody")
	}
	c.asked = true // a reconciliation has begun to read, and may get the first version
	if c.concerns("1") {
		t.Error("what was told already is told again")
	}
	if !c.concerns("2") || !c.concerns(absent) || !c.concerns("3") {
		t.Error("a change is not told")
	}
	if c.concerns("3") {
		t.Error("what was told already is told again")
	}
}
