package story

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/quickstart"
)

// teamsOfReplica is how many namespaces there are for each replica, and sites are the Websites in each.
const teamsOfReplica = 4

var sites = []string{"docs", "home"}

// shared returns the story of replicas that share Websites.
func shared(replicas int) demo.Story {
	s := sharing{}
	for i := range teamsOfReplica * replicas {
		s.teams = append(s.teams, fmt.Sprint("team-", i+1))
	}
	return demo.Story{
		Name:     "quickstart",
		Operator: quickstart.Config,
		Replicas: replicas,
		Tell:     s.tell,
		Look:     "bin/controlplane kubectl get websites -A",
		// Replicas hold the Lease of the operator together, and one that finds it renewed by another logs that. One that has just come has nothing.
		Told: []string{"Failed to update lease", "replicas have no objects"},
		Try: []string{
			"bin/controlplane kubectl -n quickstart get leases   # which replicas there are, and which has each slot",
			"kill -STOP PROCESS   # that of a replica: the others take over, and it ends after kill -CONT",
		},
	}
}

// sharing are Websites of many teams, each with a namespace of its own.
type sharing struct{ teams []string }

func (s sharing) tell(ctx context.Context, d *demo.Demo) error {
	if err := served(ctx, d); err != nil {
		return err
	}
	d.Step("creating %d Websites in %d namespaces, team-1 to %s", len(s.teams)*len(sites), len(s.teams), s.teams[len(s.teams)-1])
	if err := s.create(ctx, d); err != nil {
		return err
	}
	if err := s.converges(ctx, d, "Welcome."); err != nil {
		return err
	}

	killed := d.Replicas()[0]
	d.Step("killing %s (SIGKILL), and changing all Websites", killed.Name)
	if err := killed.Kill(); err != nil {
		return err
	}
	if err := s.change(ctx, d, "One has gone."); err != nil {
		return err
	}
	if err := s.converges(ctx, d, "One has gone."); err != nil {
		return err
	}

	d.Step("adding a replica, and changing all Websites")
	if _, err := d.StartReplica(); err != nil {
		return err
	}
	if err := s.change(ctx, d, "One has come."); err != nil {
		return err
	}
	return s.converges(ctx, d, "One has come.")
}

func (s sharing) create(ctx context.Context, d *demo.Demo) error {
	for _, team := range s.teams {
		if err := d.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}); err != nil {
			return err
		}
		for _, site := range sites {
			if err := d.Client.Create(ctx, website(team, site, site+" of "+team, "Welcome.")); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s sharing) change(ctx context.Context, d *demo.Demo, text string) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"text":%q}}`, text))
	for _, team := range s.teams {
		for _, site := range sites {
			if err := d.Client.Patch(ctx, website(team, site, "", ""), patch); err != nil {
				return err
			}
		}
	}
	return nil
}

// converges waits until the pages of all Websites say the text, and each replica that runs, and no other, has some of them. It tells who has which.
func (s sharing) converges(ctx context.Context, d *demo.Demo, text string) error {
	var teams map[string][]string
	err := d.Until(ctx, "the replicas that run share all Websites", func(ctx context.Context) (done bool, err error) {
		teams, done, err = s.owned(ctx, d)
		return done, err
	})
	if err != nil {
		return err
	}
	for _, r := range d.Replicas() {
		has := teams[r.Name]
		d.Note(fmt.Sprintf("  %-10s %2d Websites: %s", r.Name, len(has)*len(sites), strings.Join(has, " ")))
	}
	return d.Until(ctx, "every page says "+text, func(ctx context.Context) (bool, error) { return s.say(ctx, d, text) })
}

// owned returns the teams of each replica, and whether that is settled: every replica that runs says the same.
func (s sharing) owned(ctx context.Context, d *demo.Demo) (teams map[string][]string, settled bool, err error) {
	replicas := d.Replicas()
	for _, r := range replicas {
		overview, err := r.Overview(ctx)
		if err != nil {
			return nil, false, err
		}
		if len(overview.Replicas) != len(replicas) {
			return nil, false, fmt.Errorf("%s knows of %d replicas", r.Name, len(overview.Replicas))
		}
		for _, part := range overview.Replicas {
			if part.Moving > 0 {
				return nil, false, fmt.Errorf("%d slots of %s are moving", part.Moving, part.Name)
			}
		}
	}
	teams = map[string][]string{}
	for _, team := range s.teams {
		owner := ""
		for _, r := range replicas {
			said, err := r.OwnerOf(ctx, "websites.examples.operatorkit.io", team, sites[0])
			if err != nil {
				return nil, false, err
			}
			if owner = cmp.Or(owner, said); said != owner || said == "" {
				return nil, false, fmt.Errorf("%s says that %s is of %q, not of %q", r.Name, team, said, owner)
			}
		}
		teams[owner] = append(teams[owner], team)
	}
	for _, r := range replicas {
		if len(teams[r.Name]) == 0 {
			return nil, false, fmt.Errorf("%s has nothing", r.Name)
		}
	}
	if len(teams) != len(replicas) {
		return nil, false, fmt.Errorf("%d replicas have something, and %d run", len(teams), len(replicas))
	}
	return teams, true, nil
}

// say tells whether the pages of all Websites say a text.
func (s sharing) say(ctx context.Context, d *demo.Demo, text string) (bool, error) {
	for _, team := range s.teams {
		for _, site := range sites {
			page := &corev1.ConfigMap{}
			err := d.Client.Get(ctx, client.ObjectKey{Namespace: team, Name: site + "-page"}, page)
			if err != nil || !strings.Contains(page.Data["index.html"], text) {
				return false, client.IgnoreNotFound(err)
			}
		}
	}
	return true, nil
}
