package operatortest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Names of the authorities in the folder of certificates. There is one for each
// purpose: a client of the API server is not one of the store.
const (
	servingAuthority = "serving-ca"
	clientAuthority  = "client-ca"
	etcdAuthority    = "etcd-ca"
)

const (
	administratorsGroup = "system:masters"
	serviceAccountKey   = "service-account.key"
	// tokensFile has the tokens of those who ask all the time: the API server verifies a certificate anew with each request, which takes
	// a tenth of its time, and looks a token up.
	tokensFile = "tokens.csv"
)

// certificates are what the parts of a control plane and its administrator
// identify themselves with. All but the tokens held here are files in dir.
type certificates struct {
	dir           string
	serving       *authority
	administrator string
	controllers   string
}

// path of a file in the folder of certificates.
func (c *certificates) path(name string) string { return filepath.Join(c.dir, name) }

// makeCertificates fills dir. Authorities and the service-account key that are
// there already stay, so that what they have signed stays valid.
func makeCertificates(dir string) (*certificates, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of certificates: %w", err)
	}
	serving, err := loadOrCreateAuthority(dir, servingAuthority)
	if err != nil {
		return nil, err
	}
	if _, err := loadOrCreateAuthority(dir, clientAuthority); err != nil {
		return nil, err
	}
	etcd, err := loadOrCreateAuthority(dir, etcdAuthority)
	if err != nil {
		return nil, err
	}
	if err := createServiceAccountKey(filepath.Join(dir, serviceAccountKey)); err != nil {
		return nil, err
	}

	issued := map[string]func() (keyPair, error){
		"kube-apiserver": func() (keyPair, error) {
			return serving.issueServer("kube-apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
		},
		"etcd":        func() (keyPair, error) { return etcd.issueServer("etcd") },
		"etcd-client": func() (keyPair, error) { return etcd.issueClient("kube-apiserver") },
	}
	for name, issue := range issued {
		pair, err := issue()
		if err != nil {
			return nil, err
		}
		if err := pair.write(dir, name); err != nil {
			return nil, err
		}
	}
	c := &certificates{dir: dir, serving: serving}
	if c.administrator, c.controllers, err = loadOrCreateTokens(filepath.Join(dir, tokensFile)); err != nil {
		return nil, err
	}
	return c, nil
}

// loadOrCreateTokens returns the tokens of the administrator and of the controllers, from the file if it is there. It has them as the
// API server reads them: a token, its user, the user's id and groups in a line.
func loadOrCreateTokens(file string) (administrator, controllers string, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		for _, user := range []string{"operatortest:administrator", "system:kube-controller-manager"} {
			text = fmt.Appendf(text, "%s,%s,,%s\n", rand.Text(), user, administratorsGroup)
		}
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return "", "", fmt.Errorf("keep the tokens of clients: %w", err)
	}
	first, second, _ := strings.Cut(string(text), "\n")
	administrator, _, _ = strings.Cut(first, ",")
	controllers, _, _ = strings.Cut(second, ",")
	return administrator, controllers, nil
}

// createServiceAccountKey makes the key that signs service-account tokens.
func createServiceAccountKey(file string) error {
	if exists(file) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("create the service-account key: %w", err)
	}
	text, err := encodeKey(key)
	if err != nil {
		return fmt.Errorf("encode the service-account key: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write the service-account key: %w", err)
	}
	return nil
}
