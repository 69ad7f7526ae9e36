package operatortest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// auditPolicyFile is in the folder of the certificates.
const auditPolicyFile = "audit-policy.yaml"

// auditPolicy has the API server note what service accounts ask for, and nothing else: nothing is but a test that looks at rights.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [system:serviceaccounts]
- level: None
`

// auditLog is the file with what the API server of a data folder has noted.
func auditLog(dataDir string) string { return filepath.Join(dataDir, "logs", "audit.log") }

// audited is a request that the API server has noted.
type audited struct {
	Verb string
	User struct{ Username string }
	// ObjectRef is nil for a request that is for no resource, such as for the version.
	ObjectRef      *auditedObject
	ResponseStatus struct{ Code int32 }
	RequestURI     string
}

type auditedObject struct {
	APIGroup, Resource, Subresource, Namespace, Name string
}

// resource is what rules call it.
func (o *auditedObject) resource() string {
	if o.Subresource == "" {
		return o.Resource
	}
	return o.Resource + "/" + o.Subresource
}

// verbs are those that a request needs the right to. An apply that creates its object is a patch and a create.
func (a audited) verbs() []string {
	if a.Verb == "patch" && a.ResponseStatus.Code == http.StatusCreated {
		return []string{"patch", "create"}
	}
	return []string{a.Verb}
}

// refused tells whether the user had no right to it.
func (a audited) refused() bool { return a.ResponseStatus.Code == http.StatusForbidden }

// uses tells whether the request is one for which a rule is needed. One with names is for these objects only.
func (a audited) uses(group, resource, verb string, names []string) bool {
	o := a.ObjectRef
	return o != nil && !a.refused() &&
		(group == rbacv1.APIGroupAll || o.APIGroup == group) &&
		(resource == rbacv1.ResourceAll || o.resource() == resource) &&
		(verb == rbacv1.VerbAll || slices.Contains(a.verbs(), verb)) &&
		(len(names) == 0 || slices.Contains(names, o.Name))
}

func (a audited) String() string {
	if a.ObjectRef == nil {
		return a.Verb + " " + a.RequestURI
	}
	text := a.Verb + " " + a.ObjectRef.resource()
	if a.ObjectRef.APIGroup != "" {
		text += "." + a.ObjectRef.APIGroup
	}
	if a.ObjectRef.Name != "" {
		text += " " + a.ObjectRef.Name
	}
	if a.ObjectRef.Namespace == "" {
		return text + " in all namespaces"
	}
	return text + " in namespace " + a.ObjectRef.Namespace
}

// auditedOf returns what the API server of a data folder has noted of a user.
func auditedOf(dataDir, user string) (all []audited, err error) {
	file, err := os.Open(auditLog(dataDir))
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // A line that is half written is read the next time.
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		var a audited
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		if a.User.Username == user {
			all = append(all, a)
		}
	}
}
