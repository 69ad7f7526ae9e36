package inspector

import (
	"strings"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
)

func TestThePageShowsAHaltedUpgradeAndWhatWaits(t *testing.T) {
	object := func(name string) upgrade.Object {
		return upgrade.Object{Framework: "sites", Namespace: "web", Name: name}
	}
	view := &upgrade.View{
		State: upgrade.State{
			From: upgrade.Build{ID: "one"}, To: upgrade.Build{ID: "two", Version: "v2"}, Phase: upgrade.Halted, Since: time.Now(),
			Places:  []upgrade.Place{{Object: object("a"), Failed: "is not ready 10m0s after it was admitted"}, {Object: object("b")}},
			Reports: map[string]upgrade.Report{"operator": {Objects: 10, Held: 4, Unseen: 1}},
		},
		Waiting: []upgrade.Waiting{
			{Object: object("c"), Would: "update ConfigMap web/c (data)"}, {Object: object("d"), Would: "fail", OnHold: true},
		},
	}
	var page strings.Builder
	if err := templates["overview"].Execute(&page, struct {
		Title, Tab, Operator, Events, Words string
		Content                             Overview
	}{Content: Overview{Upgrade: view}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"from one to v2 (two)", "upgrade resume", `aria-label="3 done, 2 changing, 4 held, 1 unseen"`, `class="held" x="50" width="40"`,
		"/inspector/object?framework=sites&amp;name=a&amp;namespace=web", "is not ready 10m0s after it was admitted", "is not ready yet",
		"would update ConfigMap web/c (data)", "On hold", "All objects that wait",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if t.Failed() {
		t.Log(page.String())
	}
}
