package helm_test

import (
	"testing"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// TestReleasesOfTheSameContentShareWhatIsKept: of a release that is there under another UID, as on another cluster, nothing more is kept.
func TestReleasesOfTheSameContentShareWhatIsKept(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"))
	k.settle(service)
	revisions, contents := k.carrier.Kept()
	if revisions == 0 || contents == 0 {
		t.Fatalf("%d bytes of revisions and %d of their contents are kept", revisions, contents)
	}
	k.eventually(k.service(nil, gone), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	k.settle(service)
	again, shared := k.carrier.Kept()
	if again <= revisions || shared != contents {
		t.Errorf("%d bytes of revisions are kept, and before it were %d; %d of their contents, and before it were %d", again, revisions, shared, contents)
	}
}

// TestWhatIsKeptOfReleasesIsBoundedInBytes: with no room at all, everything is read each time, and all is as before.
func TestWhatIsKeptOfReleasesIsBoundedInBytes(t *testing.T) {
	k := newKit(t, helm.Config{Remembered: 64})
	service := k.service(pageChart("1.0.0"))
	k.settle(service)
	if revisions, contents := k.carrier.Kept(); revisions+contents > 64 {
		t.Errorf("%d bytes are kept", revisions+contents)
	}
	if result := k.compute(service); len(result.Changes) > 0 || result.Found.Fingerprint != service.Fingerprint {
		t.Errorf("it is not as it was put there: %+v", result)
	}
}
