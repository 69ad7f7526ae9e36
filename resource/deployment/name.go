package deployment

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// suffixLength is how many letters tell names apart.
const suffixLength = 5

// letters has lower-case letters and digits without those that are easily mistaken for others.
var letters = base32.NewEncoding("abcdefghjkmnpqrstuvwxyz123456789").WithPadding(base32.NoPadding)

// suffix returns letters that depend on the parts alone.
func suffix(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(p), p)
	}
	return letters.EncodeToString(h.Sum(nil))[:suffixLength]
}

// GenerateServiceName returns a name for a service of an image: the last part of the image's name, and letters that tell images
// with the same last part apart. It follows the rule for names of services. Other tags and digests of an image have the same name.
func GenerateServiceName(image string) (string, error) { return generatedName(image, 0) }

// generatedName returns one of several such names.
func generatedName(image string, number int) (string, error) {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("make a service's name of image %q: %w", image, err)
	}
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, path.Base(ref.Name()))
	base = base[:min(len(base), validation.DNS1123LabelMaxLength-suffixLength-1)]
	parts := []string{ref.Name()}
	if number > 0 {
		parts = append(parts, strconv.Itoa(number))
	}
	return strings.Trim(base, "-") + "-" + suffix(parts...), nil
}

// serviceID returns the ID of a service that is new.
func serviceID(owner api.Owner) string { return owner.Mark().Hash("service", owner.Service) }

// NameResolver resolves machine and container IDs to their names. scheduler.ClusterState is one.
type NameResolver interface {
	MachineName(machineID string) string
	ContainerName(containerID string) string
}

// ids is the NameResolver that shows IDs.
type ids struct{}

func (ids) MachineName(machineID string) string { return machineID }

func (ids) ContainerName(containerID string) string { return containerID }

func orIDs(r NameResolver) NameResolver {
	if r == nil {
		return ids{}
	}
	return r
}

// namer gives new containers names that depend on what is there alone, so that the same state gives the same plan, and on whose they
// are, so that services of the same name get others.
type namer struct {
	owner api.Owner
	taken map[string]bool
	// numbers are the ones that are to be tried next, by machine and image: those before are taken.
	numbers map[[2]string]int
}

func newNamer(owner api.Owner) namer {
	return namer{owner: owner, taken: map[string]bool{}, numbers: map[[2]string]int{}}
}

// next returns a name for a container on a machine.
func (n *namer) next(machineID, image string) string {
	at := [2]string{machineID, image}
	for {
		i := n.numbers[at]
		n.numbers[at]++
		name := n.owner.Service + "-" + suffix(n.owner.Mark().Hash(n.owner.Service, machineID, image, strconv.Itoa(i)))
		if !n.taken[name] {
			n.taken[name] = true
			return name
		}
	}
}

// hook returns a name for the container of a pre-deploy hook.
func (n *namer) hook() string {
	hash := n.owner.Mark().Hash(n.owner.Service)
	name := n.owner.Service + "-pre-deploy-" + suffix(hash)
	for i := 1; n.taken[name]; i++ {
		name = n.owner.Service + "-pre-deploy-" + suffix(hash, strconv.Itoa(i))
	}
	return name
}
