package helm_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

const password = "correct-horse-battery"

// hides checks that a text has the password in no form.
func hides(t *testing.T, what, text string) {
	t.Helper()
	for _, form := range []string{password, base64.StdEncoding.EncodeToString([]byte(password))} {
		if strings.Contains(text, form) {
			t.Errorf("%s shows the password:\n%s", what, text)
		}
	}
}

func withPassword(s *carrier.Service) {
	s.Values = map[string]any{"text": "x-" + password, "db": map[string]any{"password": password, "pin": int64(77), "host": "db"}}
	s.Secret = map[string]any{"text": true, "db": map[string]any{"password": true, "pin": true}}
}

func TestValuesOfSecretsAreInNoPlanNoteOrError(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := pageChart("1.0.0").with("templates/secret.yaml", `apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: {{ .Values.db.password | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: encoded}
data: {a: {{ .Values.db.password | b64enc | quote }}, url: {{ printf "http://u:%s@%s" .Values.db.password .Values.db.host | quote }}, pin: {{ .Values.db.pin | quote }}}
`)
	service := k.service(chart, withPassword)
	result := k.compute(service)
	said := text(result.Changes) + fmt.Sprint(result.Notes)
	hides(t, "the plan", said)
	for _, part := range []string{`values.db.host`, `values.db.password`, "(sensitive)"} {
		if !strings.Contains(said, part) {
			t.Errorf("the plan does not say %q:\n%s", part, said)
		}
	}
	if strings.Contains(said, `"77"`) || strings.Contains(said, ": 77") {
		t.Errorf("the plan shows the PIN:\n%s", said)
	}
	k.settle(service)
	next := k.service(chart, withPassword, func(s *carrier.Service) { s.Values["db"].(map[string]any)["password"] = "another-one-now" })
	said = text(k.compute(next).Changes)
	hides(t, "the plan of a change", said)
	if !strings.Contains(said, "values.db.password") || strings.Contains(said, "another-one-now") {
		t.Errorf("the plan of a change is:\n%s", said)
	}
	k.edit("encoded", `{"data":{"url":"changed"}}`)
	hides(t, "the drift", text(k.compute(service).Drift))
	failing := chart.with("templates/fail.yaml", `{{ fail (printf "no: %s %s" .Values.db.password (.Values.db.password | b64enc)) }}`)
	hides(t, "the error", k.failure(k.service(failing, withPassword), "no: (sensitive)").Error())
	schema := chart.with("values.schema.json", `{"properties":{"db":{"properties":{"password":{"enum":["a"],"pattern":"^[0-9]+$"},"host":{"type":"integer"}}}}}`)
	hides(t, "the error of a schema", k.failure(k.service(schema, withPassword), "/db/host").Error())
}

func TestValuesThatCameFromASecretStayHiddenWhenItIsGone(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock})
	plain := values(map[string]any{"text": "plain"})
	k.settle(k.service(pageChart("1.0.0"), withPassword, takenBack(time.Hour)))
	bad := k.service(pageChart("2.0.0").with("templates/server.yaml", serverTemplate), plain, takenBack(time.Hour))
	said := text(k.compute(bad).Changes)
	hides(t, "the plan", said)
	for _, part := range []string{"values.text: (sensitive", "values.db.password: (sensitive", "data.text: (sensitive", `values.db.host: "db"`} {
		if !strings.Contains(said, part) {
			t.Errorf("the plan does not say %q:\n%s", part, said)
		}
	}
	k.settle(bad)
	clock.SetTime(time.Now().Add(2 * time.Hour))
	back := k.compute(bad)
	if said = text(back.Changes); !strings.Contains(said, "roll back to revision 1") || !strings.Contains(said, "data.text") {
		t.Errorf("it is not taken back: %s", said)
	}
	hides(t, "the plan to take it back", said)
	k.settle(bad)
	k.edit("web-page", `{"data":{"text":"changed"}}`)
	if said = text(k.compute(bad).Drift); !strings.Contains(said, "data.text") {
		t.Errorf("there is no drift: %s", said)
	}
	hides(t, "the drift of what was taken back", said)

	hides(t, "the plan of what comes next", text(k.compute(k.service(pageChart("3.0.0"), plain)).Changes))
}

func TestARevisionThatDoesNotSayWhatCameFromASecretHidesWhatIsGone(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0"), withPassword))
	next := k.service(pageChart("1.1.0"))
	for _, marks := range []string{"null", `"all"`, `"true"`, `"[]"`} {
		patch := `{"metadata":{"annotations":{"services.operatorkit.io/secret-values":` + marks + `}}}`
		if err := k.user.Patch(t.Context(), k.revision("1"), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
		said := text(k.compute(next).Changes)
		hides(t, "the plan with the marks "+marks, said)
		if !strings.Contains(said, "values.text") {
			t.Errorf("the plan does not say that the text goes:\n%s", said)
		}
	}
}
