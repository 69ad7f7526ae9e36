package fetch_test

import (
	"bytes"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"helm.sh/helm/v4/pkg/provenance"
	helm "helm.sh/helm/v4/pkg/registry"

	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// signer makes a key, and returns what it signs with and its keyring.
func signer(t *testing.T, name string) (func(archive []byte, file string) []byte, string) {
	t.Helper()
	entity, err := openpgp.NewEntity(name, "", name+"@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var ring bytes.Buffer
	if err := entity.Serialize(&ring); err != nil {
		t.Fatal(err)
	}
	return func(archive []byte, file string) []byte {
		signed, err := (&provenance.Signatory{Entity: entity}).ClearSign(archive, file, []byte("name: app\n"))
		if err != nil {
			t.Fatal(err)
		}
		return []byte(signed)
	}, ring.String()
}

func TestProvenance(t *testing.T) {
	ann, annKeys := signer(t, "ann")
	bob, bobKeys := signer(t, "bob")
	archive, other := chartOf(t, "app", "1.0.0"), chartOf(t, "app", "1.0.0", entry{name: "app/more"})
	var armored bytes.Buffer
	w, err := armor.Encode(&armored, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(annKeys)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const file = "app-1.0.0.tgz"
	for name, test := range map[string]struct {
		keyring    string
		provenance []byte
		class      error
		says       string
	}{
		"signed":              {annKeys, ann(archive, file), nil, ""},
		"signed, text keys":   {armored.String(), ann(archive, file), nil, ""},
		"one of several keys": {bobKeys + annKeys, ann(archive, file), nil, ""},
		"signed by another":   {annKeys, bob(archive, file), fetch.ErrProvenance, "keyring of the Secret shop/login"},
		"another archive":     {annKeys, ann(other, file), fetch.ErrProvenance, "sha256 sum does not match"},
		"another file":        {annKeys, ann(archive, "app-2.0.0.tgz"), fetch.ErrProvenance, `named "app-1.0.0.tgz"`},
		"no signature":        {annKeys, []byte("hello"), fetch.ErrProvenance, "signature block not found"},
		"not signed":          {annKeys, nil, fetch.ErrProvenance, "app-1.0.0.tgz.prov"},
		"no keyring":          {"hello", ann(archive, file), fetch.ErrInvalid, "gpg --export"},
	} {
		t.Run(name, func(t *testing.T) {
			web := repository(map[string][]byte{file: archive})
			charts := newStore(t)
			var options []helm.PushOption
			if test.provenance != nil {
				web = web.with("/"+file+".prov", test.provenance)
				options = append(options, helm.PushOptProvData(test.provenance))
			}
			charts.pushChart(t, "app:1.0.0", archive, options...)
			for _, address := range []string{serve(t, web).URL, oci(charts.server)} {
				f := newFetcher(t, fetch.Config{})
				for range 2 {
					c, err := f.Chart(t.Context(), chart(address), secret(t, map[string]string{"keyring": test.keyring}))
					if test.class != nil {
						fails(t, err, test.class, true, test.says)
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if c.SignedBy != "ann <ann@example.com>" {
						t.Errorf("it is signed by %q", c.SignedBy)
					}
				}
				c, err := f.Chart(t.Context(), chart(address), fetch.Credentials{})
				if err != nil || c.SignedBy != "" {
					t.Errorf("without a keyring got %v", err)
				}
			}
		})
	}
}
