package operatortest

import "testing"

func TestAnAPIServerThatHasGivenUpOnItsStoreIsStartedAnew(t *testing.T) {
	for end, want := range map[string]bool{
		`"command failed" err="error creating storage factory: context deadline exceeded"`:                                     true,
		`"command failed" err="error creating storage factory: etcd grpc connection not ready: context deadline exceeded"`:     true,
		`"command failed" err="error creating storage factory: open etcd.crt: no such file or directory"`:                      false,
		`"command failed" err="failed to create listener: listen tcp 127.0.0.1:6443: bind: address already in use"`:            false,
		`"Failed to list" err="context deadline exceeded"` + "\n" + `"command failed" err="error creating storage factory: x"`: false,
	} {
		if got := storeWasLate.MatchString(end); got != want {
			t.Errorf("of an API server that ends with %q its store was late: %t, want %t", end, got, want)
		}
	}
}
