package fetch

import (
	"os"
	"path/filepath"
	"slices"

	"helm.sh/helm/v4/pkg/provenance"
)

// provenanceLimit bounds a provenance file, which has the Chart.yaml and a signature.
var provenanceLimit = limit{1 << 20, "nothing: a provenance file has at most 1 MiB, so", "sign the chart again"}

// unsigned is the error of a chart without a provenance file.
func unsigned(file string) error {
	return permanent(ErrProvenance, "sign it (`helm package --sign`) and publish "+file+" with it, or take the key keyring out of the Secret",
		"it is not signed")
}

// verify checks the provenance of a chart, if there is a keyring, and returns who signed it.
func (f *Fetcher) verify(file string, c contents, with Credentials) (string, error) {
	if !with.has(keyKeyring) {
		return "", nil
	}
	keys, err := f.signatory(with)
	if err != nil {
		return "", err
	}
	found, err := keys.Verify(c.archive, c.provenance, file)
	if err != nil {
		return "", permanent(ErrProvenance, "sign it with a key that the keyring of the Secret "+with.secret+" has, or add the key to it",
			"the signature is not good for %s (%s)", file, plain(wanted{credentials: with}, err))
	}
	names := make([]string, 0, len(found.SignedBy.Identities))
	for name := range found.SignedBy.Identities {
		names = append(names, name)
	}
	if len(names) == 0 {
		return found.SignedBy.PrimaryKey.KeyIdString(), nil
	}
	return slices.Min(names), nil
}

// signatory reads a keyring. Helm reads its three formats from files only.
func (f *Fetcher) signatory(with Credentials) (*provenance.Signatory, error) {
	file, err := os.CreateTemp(filepath.Join(f.cache.folder, partial), "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(with.data[keyKeyring])
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	keys, err := provenance.NewFromKeyring(file.Name(), "")
	if err != nil || len(keys.KeyRing) == 0 {
		return nil, permanent(ErrInvalid, "give it what `gpg --export` writes", "the key keyring of the Secret %s has no OpenPGP keys", with.secret)
	}
	return keys, nil
}
