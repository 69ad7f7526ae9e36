package objectresource_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

func (k *kit) secret(text map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "token"}, StringData: text}
}

func TestASecretGivenAsTextIsWrittenOnce(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	secret := k.secret(map[string]string{"password": "hunter2", "empty": ""})
	secret.Data = map[string][]byte{"password": []byte("overridden"), "raw": {0, 1, 2}, "none": nil}
	r := k.resource(func() []client.Object { return just(secret)() })
	k.update(r, p)
	k.wantQuiet(r, p)

	got, _ := read(k, k.secret(nil))
	if string(got.Data["password"]) != "hunter2" || string(got.Data["raw"]) != "\x00\x01\x02" || len(got.Data) != 4 {
		t.Errorf("the data is %q", got.Data)
	}
	secret.StringData["password"] = "hunter3"
	k.wantPlan(r, p, "update Secret token", "  data.password: (sensitive, changed)")
	k.update(r, p)
	k.wantQuiet(r, p)
}

// R14: data of Secrets, and of objects that the author marks, appear nowhere.
func TestR14ValuesOfSensitiveObjectsAreNeverShown(t *testing.T) {
	plainText, encoded := "hunter2", "aHVudGVyMg"
	later, laterEncoded := "s3same", "czNzYW1l"
	for name, tc := range map[string]struct {
		object  func(k *kit, value string) client.Object
		changes []func(*config)
	}{
		"a typed secret": {object: func(k *kit, value string) client.Object {
			return k.secret(map[string]string{"password": value})
		}},
		"an untyped secret": {object: func(k *kit, value string) client.Object {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret",
				"metadata": map[string]any{
					"name":        "token",
					"annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": `{"data":"` + value + `"}`},
				},
				"stringData": map[string]any{"password": value},
			}}
		}},
		"an object marked by its author": {
			object:  func(k *kit, value string) client.Object { return k.data("token", map[string]string{"password": value}) },
			changes: []func(*config){func(c *config) { c.Sensitive = func(client.Object) bool { return true } }},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			value := plainText
			r := k.resource(func() []client.Object { return []client.Object{tc.object(k, value)} }, tc.changes...)

			var shown strings.Builder
			show := func() {
				t.Helper()
				current, err := r.GetCurrentState(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				desired, err := r.GetDesiredState(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				patch, err := r.NewUpdatePatch(t.Context(), p, current, desired)
				if err != nil {
					t.Fatal(err)
				}
				create, _ := patch.CreateChange()
				update, _ := patch.UpdateChange()
				for _, state := range []objectresource.State{current, desired, create, update} {
					b, err := json.Marshal(state)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&shown, "%s %v %+v %#v %s %+v %#v\n", state, state, state, state, b, state.Changes(), state.Changes())
				}
			}
			show()
			k.update(r, p)
			value = later
			show()
			k.update(r, p)
			shown.WriteString(k.log.String())

			if !strings.Contains(shown.String(), "data.password") || !strings.Contains(shown.String(), "updated an object") {
				t.Fatalf("nothing was shown: %s", shown.String())
			}
			for _, secret := range []string{plainText, encoded, later, laterEncoded} {
				if strings.Contains(shown.String(), secret) {
					t.Errorf("%q is shown in:\n%s", secret, shown.String())
				}
			}
		})
	}
}

func TestR14ErrorsAboutASecretDoNotQuoteIt(t *testing.T) {
	for name, data := range map[string]map[string]any{
		"a number in place of a string": {"password": int64(1234567)},
		"not base64":                    {"password": "1234567!"},
		"a key that is not allowed":     {"a key": "MTIzNDU2Nw=="},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			r := k.resource(func() []client.Object {
				return []client.Object{&unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token"}, "data": data,
				}}}
			})
			err := framework.ProcessUpdate(t.Context(), p, []framework.Resource{r})
			if err == nil {
				t.Fatal("the server took it")
			}
			for e := err; e != nil; {
				if strings.Contains(e.Error(), "1234567") || strings.Contains(e.Error(), "MTIzNDU2Nw") {
					t.Errorf("the error quotes the secret: %v", e)
				}
				u, ok := e.(interface{ Unwrap() error })
				if !ok {
					break
				}
				e = u.Unwrap()
			}
			if !strings.Contains(err.Error(), "Secret "+k.namespace+"/token") {
				t.Errorf("the error does not name the object: %v", err)
			}
		})
	}
}
