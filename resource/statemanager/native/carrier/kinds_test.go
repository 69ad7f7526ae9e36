package carrier_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// forgetful is a mapper that knows nothing, and counts how often it is asked, and how often to forget.
type forgetful struct {
	meta.RESTMapper
	asked, forgot int
}

func (m *forgetful) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	m.asked++
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

func (m *forgetful) Reset() { m.forgot++ }

func TestWhileAKindIsAwaitedAllOthersAreForgottenOnce(t *testing.T) {
	mapper := &forgetful{}
	wanted := []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Widget"}}
	var err error
	for timeout := 100 * time.Millisecond; mapper.asked < 3; timeout *= 2 {
		*mapper = forgetful{}
		err = carrier.AwaitKinds(t.Context(), nil, mapper, timeout, nil, wanted, nil)
	}
	if !meta.IsNoMatchError(err) || mapper.forgot != 1 {
		t.Errorf("err = %v after %d questions; it forgot %d times, want once", err, mapper.asked, mapper.forgot)
	}
}
