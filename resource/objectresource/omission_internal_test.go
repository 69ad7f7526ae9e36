package objectresource

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// release is an object with values that its author writes as JSON.
type release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec releaseSpec `json:"spec"`
}

type releaseSpec struct {
	Values  apiextensionsv1.JSON  `json:"values"`
	None    apiextensionsv1.JSON  `json:"none"`
	Null    *apiextensionsv1.JSON `json:"null,omitempty"`
	Any     map[string]any        `json:"any"`
	Parts   []part                `json:"parts"`
	Named   map[string]*part      `json:"named"`
	Nothing []string              `json:"nothing"`
	Since   metav1.Time           `json:"since"`
	Raw     *runtime.RawExtension `json:"raw,omitempty"`
}

type part struct {
	Names []string `json:"names"`
	Size  int      `json:"size"`
}

// DeepCopyObject implements runtime.Object.
func (r *release) DeepCopyObject() runtime.Object { c := *r; return &c }

func TestNullsThatAnAuthorWritesStay(t *testing.T) {
	given := &release{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: releaseSpec{
			Values: apiextensionsv1.JSON{Raw: []byte(`{"probe":null,"on":{"off":null}}`)},
			Null:   &apiextensionsv1.JSON{Raw: []byte(`null`)},
			Any:    map[string]any{"probe": nil, "deep": map[string]any{"probe": nil}},
			Parts:  []part{{Size: 1}},
			Named:  map[string]*part{"nobody": nil, "somebody": {Size: 2}},
			Raw:    &runtime.RawExtension{Raw: []byte(`{"probe":null}`)},
		},
	}
	u, err := content(given, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Release"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(u.Object["spec"], "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "any": {
  "deep": {
   "probe": null
  },
  "probe": null
 },
 "named": {
  "somebody": {
   "size": 2
  }
 },
 "null": null,
 "parts": [
  {
   "size": 1
  }
 ],
 "raw": {
  "probe": null
 },
 "values": {
  "on": {
   "off": null
  },
  "probe": null
 }
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the desired state (-want +got):\n%s", diff)
	}
}
