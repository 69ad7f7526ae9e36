package carrier_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func newHider() *carrier.Hider {
	return carrier.NewHider(
		map[string]any{"password": "correct-horse", "pin": int64(7703), "short": "x7", "host": "db", "key": "-----\nfirst line\nsecond line\n-----\n", "list": []any{"one-of-them"}},
		map[string]any{"password": true, "pin": true, "short": true, "key": true, "list": true},
	)
}

func TestValuesOfSecretsAreFoundWhereverTheyComeUp(t *testing.T) {
	h := newHider()
	for _, text := range []string{
		"correct-horse", "http://u:correct-horse@db", base64.StdEncoding.EncodeToString([]byte("correct-horse")), "7703", "the second line", "one-of-them",
	} {
		if said := h.Text("it is " + text); !strings.Contains(said, plan.Redacted) || strings.Contains(said, text) {
			t.Errorf("%q becomes %q", text, said)
		}
		if !h.Holds(map[string]any{"a": []any{text}}) || !h.Holds(map[string]any{text: "a"}) {
			t.Errorf("%q is not found in a value", text)
		}
	}
	// What is short is a secret as a whole only: as a part, it would be found everywhere.
	if !h.Holds("x7") || h.Holds("x77") || h.Text("x7") != "x7" || !h.Holds(int64(7703)) || h.Holds("db") || h.Holds(true) {
		t.Error("whole values are not told apart from parts")
	}
	h.Add(map[string]any{"password": "the-former-one"}, map[string]any{"password": true})
	h.AddTexts([]string{"from elsewhere", "no"})
	if said := h.Text("the-former-one, from elsewhere, no"); strings.Contains(said, "former") || strings.Contains(said, "elsewhere") || !strings.HasSuffix(said, ", no") {
		t.Errorf("what was added is said: %s", said)
	}
	var none *carrier.Hider
	if none.Text("correct-horse") != "correct-horse" || none.Holds("correct-horse") || len(none.Changes([]plan.Change{{}})) != 1 {
		t.Error("a hider of nothing hides something")
	}
}

func TestWhatACarrierSaysHasNoValuesOfSecrets(t *testing.T) {
	given := []plan.Change{{Description: "with correct-horse", Fields: []plan.FieldChange{
		{Path: "data.password", New: "correct-horse"}, {Path: "data.pin", Old: "7703"}, {Path: "data.host", New: "db"},
	}}}
	result := &carrier.Result{Changes: given, Drift: given, Notes: []string{"correct-horse"}, Health: carrier.Health{Message: "correct-horse"}}
	said := newHider().Result(result)
	if text := fmt.Sprintf("%+v", said); strings.Contains(text, "correct-horse") || strings.Contains(text, "7703") || !strings.Contains(text, `data.host: "db"`) {
		t.Errorf("it says %s", text)
	}
	if given[0].Fields[0].New != "correct-horse" || result.Notes[0] != "correct-horse" {
		t.Error("what the carrier hands to itself is changed")
	}
	all := &carrier.Hider{Everything: true}
	if fields := all.Changes([]plan.Change{{Fields: []plan.FieldChange{{Path: "metadata.name", New: "a"}, {Path: "data.host", New: "db"}}}})[0].Fields; fields[0].New != "a" || fields[1].New == "db" {
		t.Errorf("of an object that is secret as a whole %+v is said", fields)
	}
}

func TestAnErrorWithoutSecretsStaysWhatItIs(t *testing.T) {
	refused := &quoting{}
	err := newHider().Error(framework.Permanent(fmt.Errorf("apply it with correct-horse: %w", errors.Join(refused, carrier.ErrConflict))))
	if found := (*quoting)(nil); strings.Contains(err.Error(), "correct-horse") || !framework.IsPermanent(err) || !carrier.IsConflict(err) || !errors.As(err, &found) {
		t.Errorf("it is %v, permanent: %v, a conflict: %v", err, framework.IsPermanent(err), carrier.IsConflict(err))
	}
	if said := newHider().Error(errors.New("nothing secret")); said.Error() != "nothing secret" || newHider().Error(nil) != nil {
		t.Errorf("an error without secrets becomes %v", said)
	}
}

type quoting struct{}

func (*quoting) Error() string { return "it quotes correct-horse" }
