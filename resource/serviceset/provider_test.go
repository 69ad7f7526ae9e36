package serviceset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestProviderNameAndConfigAreCompleted(t *testing.T) {
	const made = `{"priority":7,"syncMode":"DryRun","continueOnError":true}`
	tests := []struct {
		name, provider, config string
		wantName, wantConfig   string
	}{
		{"both are set", "sveltos", `{"tier":1}`, "sveltos", `{"tier":1}`},
		{"the name is set", "sveltos", "", "sveltos", made},
		{"the config is set", "", `{"tier":1}`, v1alpha1.DefaultStateManagementProvider, `{"tier":1}`},
		{"none is set", "", "", v1alpha1.DefaultStateManagementProvider, made},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := v1alpha1.ServiceSpec{Priority: 7, SyncMode: v1alpha1.SyncModeDryRun, ContinueOnError: true}
			spec.Provider = v1alpha1.StateManagementProviderConfig{Name: tt.provider, SelfManagement: true}
			if tt.config != "" {
				spec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(tt.config)}
			}
			before := spec.DeepCopy()
			got, err := serviceset.StateManagementProviderConfigFromServiceSpec(spec)
			if err != nil {
				t.Fatal(err)
			}
			want := v1alpha1.StateManagementProviderConfig{
				Name: tt.wantName, SelfManagement: true, Config: &apiextensionsv1.JSON{Raw: []byte(tt.wantConfig)},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the configuration differs (-want +got):\n%s", diff)
			}
			got.Config.Raw[1] = '!'
			if diff := cmp.Diff(before, &spec); diff != "" {
				t.Errorf("the spec was changed, or is shared (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAProviderConfigThatIsNoObjectIsAnError(t *testing.T) {
	for _, config := range []string{"", "  ", "3", `"text"`, "[]", "{", "null"} {
		spec := v1alpha1.ServiceSpec{}
		spec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(config)}
		_, err := serviceset.StateManagementProviderConfigFromServiceSpec(spec)
		if err == nil || !strings.Contains(err.Error(), "it has to be a JSON object") {
			t.Errorf("%q: the error is %v", config, err)
		}
	}
}
