package statemanager_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

func TestOfAConfigWithAFaultTheRestIsRead(t *testing.T) {
	config := func(account string) statemanager.Config {
		return statemanager.Config{Priority: v1alpha1.DefaultPriority, SyncMode: v1alpha1.SyncModeContinuous, ServiceAccountName: account}
	}
	for name, tt := range map[string]struct {
		given, says string
		unknown     bool // with whose rights
		want        statemanager.Config
	}{
		"nothing":                            {`{}`, "", false, config("")},
		"a sync mode that there is not":      {`{"syncMode": "continuous", "serviceAccountName": "web"}`, `syncMode is "continuous": it is OneTime`, false, config("web")},
		"a sync mode that is no text":        {`{"syncMode": 1, "serviceAccountName": "web"}`, "spec.provider.config can't be read", false, config("web")},
		"a priority that is no number":       {`{"priority": "high", "serviceAccountName": "web"}`, "spec.provider.config can't be read", false, config("web")},
		"an account that is none":            {`{"serviceAccountName": "Web"}`, `serviceAccountName is "Web", which is no name`, false, config("Web")},
		"an account that is no text":         {`{"serviceAccountName": {"name": "web"}}`, "serviceAccountName can't be read", true, config("")},
		"an account behind a fault, no text": {`{"priority": "high", "serviceAccountName": 1}`, "serviceAccountName can't be read", true, config("")},
		"a list":                             {`[]`, "serviceAccountName can't be read", true, config("")},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1alpha1.ServiceSet{}
			set.Spec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(tt.given)}
			got, err := statemanager.ConfigOf(set)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (tt.says != "") || err != nil && (!framework.IsPermanent(err) || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("the error is %v", err)
			}
			if errors.Is(err, statemanager.ErrAccountUnknown) != tt.unknown {
				t.Errorf("it is known with whose rights: %v", err)
			}
		})
	}
}
