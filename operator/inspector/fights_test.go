package inspector_test

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// revert has somebody else write the page of a site.
func (p *pages) revert(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.written[name].DeepCopy()
	page.Data["<color>"] = "theirs"
	p.written[name] = page
}

func TestFightsAreShownOnTheOverviewAndWithTheirObject(t *testing.T) {
	logger, written := quiet(t), &pages{written: map[string]*corev1.ConfigMap{}}
	w := startFramework(t, inspector.Config{Name: "site-operator", Logger: logger}, framework.Config{
		Source: informer.NewPush(kind), Resources: []framework.Resource{crudOf(t, logger, written)},
	})
	access.EngineOf(w.framework).FindManagers(func(context.Context, string, plan.Object, []string) []string { return []string{`"<intruder>"`} })
	w.put(site("home", "<color>", "ours"))
	w.put(site("other", "<color>", "ours"))
	w.reconciled(2)
	lacks(t, w.get("", http.StatusOK), "undone again and again")
	lacks(t, w.get(objectPath("home"), http.StatusOK), "Undone again and again")
	for n := range uint64(6) {
		written.revert("home")
		w.framework.Enqueue(informer.Key{Namespace: "default", Name: "home"})
		w.reconciled(3 + n)
	}

	overview := read[inspector.Overview](w, "overview")
	if overview.FightCount != 1 || len(overview.Fights) != 1 || overview.Fights[0].Name != "home" || overview.Fights[0].Times != 5 || overview.Frameworks[0].Status.Fights != 1 {
		t.Errorf("the overview has %d fights: %+v", overview.FightCount, overview.Fights)
	}
	row := []string{`update <strong>ConfigMap default/home-page</strong> <code>data[&#34;&lt;color&gt;&#34;]</code>`, "&#34;&lt;intruder&gt;&#34;"}
	has(t, w.get("", http.StatusOK), append(row, "1 change is undone again and again", `href="/inspector/`+"object?framework=sites.example.com&amp;name=home&amp;namespace=default")...)
	has(t, w.get(objectPath("home"), http.StatusOK), append(row, "Undone again and again", "<th scope=\"row\">pages</th>", "the change is undone again and again")...)
	if object := read[inspector.Object](w, objectPath("home")); len(object.Fights) != 1 || object.Fights[0].Managers[0] != `"<intruder>"` || object.Fights[0].Next.IsZero() {
		t.Errorf("the object has the fights %+v", object.Fights)
	}
	if object := read[inspector.Object](w, objectPath("other")); len(object.Fights) != 0 {
		t.Errorf("the other object has the fights %+v", object.Fights)
	}
}
